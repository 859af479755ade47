cat > scenarios/forecast.yaml <<'END'
servers: { weather: { mock: ../weather.yaml } }
matrix: { transport: stdio }
steps: [{ call: { tool: forecast, args: { city: Oslo } } }]
END
