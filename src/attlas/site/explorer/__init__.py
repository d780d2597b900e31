"""The live explorer: JavaScript modules, and the code that bundles them into one page."""
