"""Encoded fields: the names of a listing as the protobuf fields of Pulsar's answer."""
