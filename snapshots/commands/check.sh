rehearse check --baseline accepted.yaml --update-baseline -- node server.js
