"""Training: configs and recipes, the updates, the loop, and what is measured along the way."""
