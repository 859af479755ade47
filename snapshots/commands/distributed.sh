cat > scenarios/forecast.yaml <<'END'
servers: { weather: { mock: ../weather.yaml } }
steps: [{ call: { tool: forecast, args: { city: Oslo } } }]
END
rehearse run --report last.json
for part in 2 3 4; do rehearse run --shard $part/4 --report part-$part.json; done
