/** The front page's film, where the page has its place. */
import { heroView } from "./hero_view.js";

if (document.getElementById("hero-plane") !== null) heroView();
