/* Normalised mirror descent on token selection for one shape, written to be fast.

   Compiled with -DN -DT -DD (samples, tokens, width) and -DP4 = 4 p, one of 7, 8, 12. Tokens come
   as X[n][d][t], so that scores of one sample are a vector over t; W is kept by columns. Powers of
   7/3, 4/3, 3/4 and 3/2 are cube and square roots, as in the library; the exponential and the cube
   root are those of the vector library of glibc. */

#include <math.h>
#include <string.h>

#if P4 == 8
#define NORM_POWER(a) ((a) * (a))
#define NORM_ROOT(s) sqrt(s)
#define PRIMAL(a) (a)
#define DUAL(a) (a)
#elif P4 == 7
#define NORM_POWER(a) ((a) * (a) * cbrt(a))
#define NORM_ROOT(s) pow(s, 3.0 / 7.0)
#define PRIMAL(a) ((a) * cbrt(a))
#define DUAL(a) sqrt((a) * sqrt(a))
#elif P4 == 12
#define NORM_POWER(a) ((a) * sqrt(a))
#define NORM_ROOT(s) cbrt((s) * (s))
#define PRIMAL(a) sqrt(a)
#define DUAL(a) ((a) * (a))
#endif

static void one(const double *restrict X, const double *restrict y, const double *restrict z,
                const double *restrict v, double *restrict start, double *restrict early,
                int steps, int early_at, double rate) {
    double dual[D * D], W[D * D], G[D * D], score[N * T], h[N * T], c[N * T];
    for (int k = 0; k < D * D; k++) {
        double w = start[(k % D) * D + k / D];
        dual[k] = copysign(DUAL(fabs(w)), w);
    }
    for (int i = 0; i < N; i++)
        for (int t = 0; t < T; t++) {
            double s = 0;
            for (int a = 0; a < D; a++) s += X[(i * D + a) * T + t] * v[a];
            score[i * T + t] = y[i] * s;
        }
    for (int step = 0; step <= steps; step++) {
#pragma omp simd
        for (int k = 0; k < D * D; k++) W[k] = copysign(PRIMAL(fabs(dual[k])), dual[k]);
        if (step == early_at || step == steps) {
            double *out = step == early_at ? early : start;
            for (int k = 0; k < D * D; k++) out[(k % D) * D + k / D] = W[k];
            if (step == steps) return;
        }
        for (int i = 0; i < N; i++) {
            double u[D] = {0}, *row = h + i * T;
            for (int e = 0; e < D; e++)
                for (int a = 0; a < D; a++) u[a] += W[e * D + a] * z[i * D + e];
            for (int t = 0; t < T; t++) row[t] = 0;
            for (int a = 0; a < D; a++)
                for (int t = 0; t < T; t++) row[t] += X[(i * D + a) * T + t] * u[a];
            double top = row[0];
            for (int t = 1; t < T; t++) top = row[t] > top ? row[t] : top;
            for (int t = 0; t < T; t++) row[t] -= top;
        }
#pragma omp simd
        for (int k = 0; k < N * T; k++) c[k] = exp(h[k]);
        for (int k = 0; k < D * D; k++) G[k] = 0;
        for (int i = 0; i < N; i++) {
            double total = 0, held = 0, mean = 0, f[D];
            for (int t = 0; t < T; t++) total += c[i * T + t];
            for (int t = 0; t < T; t++) held = h[i * T + t] == 0 ? score[i * T + t] : held;
            for (int t = 0; t < T; t++) c[i * T + t] /= total;
            for (int t = 0; t < T; t++) mean += c[i * T + t] * (score[i * T + t] - held);
            double slope = -1 / (1 + exp(held + mean)) / N;
            for (int t = 0; t < T; t++)
                c[i * T + t] *= slope * (score[i * T + t] - held - mean);
            for (int a = 0; a < D; a++) {
                f[a] = 0;
                for (int t = 0; t < T; t++) f[a] += c[i * T + t] * X[(i * D + a) * T + t];
            }
            for (int e = 0; e < D; e++)
                for (int a = 0; a < D; a++) G[e * D + a] += f[a] * z[i * D + e];
        }
        /* Relative to the largest entry, powers of small gradients do not underflow. */
        double largest = 1e-300, sum = 0;
        for (int k = 0; k < D * D; k++) largest = fabs(G[k]) > largest ? fabs(G[k]) : largest;
        double unit = 1 / largest;
#pragma omp simd reduction(+ : sum)
        for (int k = 0; k < D * D; k++) {
            double a = fabs(G[k]) * unit;
            sum += NORM_POWER(a);
        }
        double factor = rate / (NORM_ROOT(sum) * largest);
        for (int k = 0; k < D * D; k++) dual[k] -= factor * G[k];
    }
}

/* All models one after the other: W holds the starts and then the ends, early [models][D][D]. */
void train(const double *X, const double *y, const double *z, const double *v, double *W,
           double *early, int models, int steps, int early_at, double rate) {
    for (int m = 0; m < models; m++)
        one(X + (long)m * N * D * T, y + m * N, z + m * N * D, v + m * D, W + m * D * D,
            early + m * D * D, steps, early_at, rate);
}
