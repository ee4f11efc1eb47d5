"""Tables, figures, report page and model card, from a store."""
