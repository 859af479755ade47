# What every page assumes: programs that stand for those of a reader, a server and a config.
program() {
    { echo '#!/bin/sh'; cat; } > "$BIN/$1"
    chmod +x "$BIN/$1"
}

# Measures, checks and tries for a moment.
program rehearse <<'END'
case "$*" in
    *--duration* | *--requests* | *--budget* | *--dry-run* | *--only* | *"--trace "*) ;;
    "bench call "*) shift 2; set -- bench call --duration 200ms --warmup 0s "$@" ;;
    "bench discovery "*) shift 2; set -- bench discovery --requests 2 "$@" ;;
    "fuzz "*) shift; set -- fuzz --budget 1s "$@" ;;
    "check client "*) shift 2; set -- check client --act clean "$@" ;;
    "check "*) shift; set -- check --only ping --protocol-version 2025-11-25 "$@" ;;
esac
exec "$REHEARSE" "$@"
END

# Servers: `node server.js` and `npx -y …`.
for name in node npx; do
    echo 'exec "$REHEARSE" mock "$HOME/../page/server.yaml"' | program $name
done
# A client: `python client.py URL`, and tests: `npm test`.
echo 'exec "$REHEARSE" mcp list-tools --http "$2"' | program python
echo 'exec "$REHEARSE" mcp call-tool forecast city=Oslo --http "$REHEARSE_URL"' | program npm

cat > server.yaml <<'END'
server: { name: shop, title: Shop, description: Sells shoes., version: 1.4.2 }
tools:
  - name: forecast
    description: Tomorrow's weather.
    inputSchema: { type: object, properties: { city: { type: string } }, required: [city] }
    outputSchema: { type: object, properties: { celsius: { type: integer } }, required: [celsius] }
    annotations: { readOnlyHint: true }
    reply: { structured: { celsius: 21 } }
  - name: search
    description: Searches.
    inputSchema: { type: object, properties: { query: { type: string } }, required: [query] }
    annotations: { readOnlyHint: true }
    reply: "{{ args.query }}"
  - name: divide
    description: Divides two numbers, and keeps count.
    inputSchema: { type: object, properties: { a: { type: number }, b: { type: number } }, required: [a, b] }
    reply: "{{ args.a }} by {{ args.b }}"
END
test -e weather.yaml || cp server.yaml weather.yaml
mkdir -p scenarios traces
test -e .mcp.json || echo '{"mcpServers": {"files": {"command": "npx", "args": ["-y", "mcp-files@1.2.3"]}}}' > .mcp.json
