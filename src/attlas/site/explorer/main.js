/** The page: starts its parts. */
import { boundsView } from "./bounds_view.js";
import { headView } from "./head_view.js";
import { mixtureView } from "./mixture_view.js";
import { selectionView } from "./selection_view.js";

selectionView();
headView();
boundsView();
mixtureView();
