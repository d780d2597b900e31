/** Small problems of token selection that pages begin with. */

/** Two samples of four tokens in the plane. */
export function twoSamples() {
  return {
    X: [
      [[0.55, 0.85], [0.2, -0.1], [-0.6, -0.35], [-1, -0.1]],
      [[0.8, -0.45], [-0.15, -0.9], [-0.55, -1.25], [-1, 0.4]],
    ],
    y: [1, 1],
    z: [[1.2, 0.3], [-0.35, 1.15]],
    v: [1.25, 0.0],
  };
}

/** Three samples of four tokens in space: `draw_sphere_selection` with the seed 0, to two places. */
export function threeSamples() {
  return {
    X: [
      [[0.19, -0.2, 0.96], [0.16, -0.82, 0.55], [0.74, 0.54, -0.4], [-0.9, -0.44, 0.03]],
      [[-0.88, -0.08, -0.47], [-0.76, -0.56, -0.33], [0.36, 0.92, -0.11], [0.88, -0.43, 0.23]],
      [[0.77, 0.08, -0.63], [-0.88, -0.43, 0.21], [-0.97, -0.2, -0.15], [0.79, 0.31, 0.52]],
    ],
    y: [-1, -1, -1],
    z: [[-0.64, -0.13, 0.76], [0.6, -0.51, 0.61], [0.85, 0.49, 0.17]],
    v: [-0.13, 0.59, 0.8],
  };
}

/** Four tokens of one sample in the plane; the first has the largest score. */
export function oneSample() {
  return { X: [[[0.9, 0.55], [0.35, -0.75], [-0.25, 0.95], [-1, -0.35]]], y: [1], z: [[1, 0.4]], v: [1, 0.2] };
}

/** Three tokens, of which the second scores `gap` less than the first. */
export function rivals(gap) {
  return { X: [[[1, 0.8], [1 - gap, -0.6], [-0.8, 0.1]]], y: [1], z: [[1, 0]], v: [1, 0] };
}
