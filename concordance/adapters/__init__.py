"""All input and output, one module per outside thing."""
