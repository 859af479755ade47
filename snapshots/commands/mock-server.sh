printf 'auth: { scopes: [notes], issuer: {} }\ntools: [{ name: read, reply: Buy milk. }]\n' > notes.yaml
cp server.yaml shop.yaml
