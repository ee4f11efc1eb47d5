"""Live page that masks, explains and measures one text at a time, on top of a documented JSON API."""
