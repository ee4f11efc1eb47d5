"""Web page and JSON API that mask, explain and measure one text at a time."""
