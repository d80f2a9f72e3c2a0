"""An episode of a trained agent with its mind beside it: a page, a video."""
