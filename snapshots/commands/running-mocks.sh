echo 'tools: [{ nam: x, reply: "{{ arg.x }}" }]' > bad.yaml
cp server.yaml my.yaml
