"""Assign-and-add: train the model, measure its circuit, judge the claims."""
