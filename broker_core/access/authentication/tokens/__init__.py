"""JSON Web Tokens, decided on as Pulsar's brokers decide: docs/reference/pulsar-behaviour.md#tokens"""
