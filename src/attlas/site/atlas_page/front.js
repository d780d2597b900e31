/** The front page, and the atlas in one file. */
import { startFolds } from "./folds.js";
import { startKeys } from "./keys.js";
import { startSearch } from "./search.js";
import { startTerms } from "./terms.js";

startSearch();
startTerms();
startKeys();
startFolds();
