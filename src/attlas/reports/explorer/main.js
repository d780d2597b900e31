/** The page: starts its parts. */
import { selectionView } from "./selection_view.js";

selectionView();
