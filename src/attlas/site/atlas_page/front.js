/** The front page, and the atlas in one file. */
import { startKeys } from "./keys.js";
import { startSearch } from "./search.js";
import { startTerms } from "./terms.js";

startSearch();
startTerms();
startKeys();
