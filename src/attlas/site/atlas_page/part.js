/** A page of a paper, of an experiment, or of the glossary. */
import { startFolds } from "./folds.js";
import { startKeys } from "./keys.js";
import { startTerms } from "./terms.js";

startTerms();
startKeys();
startFolds();
