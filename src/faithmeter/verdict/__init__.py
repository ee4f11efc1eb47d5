"""Rules of doubt and the verdict on a measurement, with the wording that all outputs share."""
