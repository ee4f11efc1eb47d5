"""Tables, figures, report page and model card of the runs in a store."""
