"""ONNX files: written from estimators, read, judged and run."""
