/** The figures of an article: starts those that the page has a place for. */
import { chartFigures } from "./live_charts.js";
import { planeFigures } from "./live_planes.js";

for (const [name, start] of Object.entries({ ...chartFigures, ...planeFigures })) {
  if (document.getElementById(`live-${name}`) !== null) start();
}
