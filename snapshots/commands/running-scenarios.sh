cat > scenarios/forecast.yaml <<'END'
servers: { weather: { mock: ../weather.yaml } }
matrix: { transport: [http, ws] }
steps:
  - discover: {}
  - call: { tool: forecast, args: { city: Oslo } }
  - { call: { tool: forecast }, expect: { isError: any } }
  - { call: { tool: search, args: { query: shoes } } }
  - { call: { tool: search }, expect: { isError: any } }
  - { call: { tool: divide, args: { a: 1, b: 2 } } }
  - { call: { tool: divide }, expect: { isError: any } }
END
