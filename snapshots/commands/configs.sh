echo '{"mcpServers": {"files": {"command": "node", "args": ["server.js"]}}}' > servers.json
cat > manifest.json <<'END'
{ "manifest_version": "0.3", "name": "shop", "version": "1.4.2", "description": "A shop.", "author": { "name": "Ada" },
  "server": { "type": "node", "entry_point": "server.js", "mcp_config": { "command": "node", "args": ["server.js"] } } }
END
printf -- '---\nname: page\ndescription: Says how to shop.\n---\nShop.\n' > SKILL.md
echo '{ "name": "shop", "version": "1.4.2", "mcpName": "io.github.ada/shop" }' > package.json
