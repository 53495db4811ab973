"""Whether later logs are still like those that a model was trained on."""
