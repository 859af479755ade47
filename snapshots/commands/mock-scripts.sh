cp server.yaml greeter.yaml
