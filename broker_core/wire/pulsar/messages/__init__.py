"""The messages of Pulsar's protocol: `make proto` generates their module from `pulsar_api.proto`."""
