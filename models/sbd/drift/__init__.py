"""Later logs are compared with those that a model was trained on."""
