// The SDKs of Anthropic and OpenAI against a scripted model: `models.mjs URL`. Writes one JSON line for each check.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [url] = process.argv.slice(2);
const require = createRequire(`${process.env.MODULES}/`);
const { default: Anthropic } = require('@anthropic-ai/sdk');
const { default: OpenAI } = require('openai');
const claude = new Anthropic({ baseURL: url, apiKey: 'none' });
const gpt = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' });
const WEATHER = 'What is the weather in Paris?';
const PIECES = ['One ', 'moment.'];
const parameters = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } };
const expected = { city: 'Paris', days: 2 };
const refusal = (error) => error.status === 401 && error.message.includes('invalid API key');

const messages = {
  question: (text, ...more) => ({
    model: 'm',
    max_tokens: 99,
    system: 'Ada',
    tools: [{ name: 'weather', input_schema: parameters }],
    messages: [{ role: 'user', content: text }, ...more],
  }),
  ask: (...question) => claude.messages.create(messages.question(...question)),
  text: (answer) => answer.content[0].text,
  async calls(answer) {
    assert.deepEqual(answer.content.map((block) => block.type), ['thinking', 'text', 'tool_use']);
    const { id, input } = answer.content[2];
    assert.deepEqual(input, expected);
    const result = { type: 'tool_result', tool_use_id: id, content: 'rain' };
    return messages.ask(WEATHER, { role: 'assistant', content: answer.content }, { role: 'user', content: [result] });
  },
  async stream() {
    const pieces = [];
    const stream = claude.messages.stream(messages.question(WEATHER)).on('text', (text) => pieces.push(text));
    return [await stream.finalMessage(), pieces];
  },
};

const chat = {
  question: (text, ...more) => ({
    model: 'm',
    tools: [{ type: 'function', function: { name: 'weather', parameters } }],
    messages: [{ role: 'system', content: 'Ada' }, { role: 'user', content: text }, ...more],
  }),
  ask: (...question) => gpt.chat.completions.create(chat.question(...question)),
  text: (answer) => answer.choices[0].message.content,
  async calls(answer) {
    const { message, finish_reason } = answer.choices[0];
    assert.equal(finish_reason, 'tool_calls');
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), expected);
    return chat.ask(WEATHER, message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'rain' });
  },
  async stream() {
    const pieces = [];
    const stream = gpt.chat.completions.stream(chat.question(WEATHER)).on('content', (text) => pieces.push(text));
    return [await stream.finalChatCompletion(), pieces.filter((piece) => piece)];
  },
};

const responses = {
  question: (text, ...more) => ({
    model: 'm',
    instructions: 'Ada',
    tools: [{ type: 'function', name: 'weather', parameters, strict: false }],
    input: [{ role: 'user', content: text }, ...more],
  }),
  ask: (...question) => gpt.responses.create(responses.question(...question)),
  text: (answer) => answer.output_text,
  async calls(answer) {
    assert.deepEqual(answer.output.map((item) => item.type), ['reasoning', 'message', 'function_call']);
    const call = answer.output[2];
    assert.deepEqual(JSON.parse(call.arguments), expected);
    const output = { type: 'function_call_output', call_id: call.call_id, output: 'rain' };
    return responses.ask(WEATHER, ...answer.output, output);
  },
  async stream() {
    const pieces = [];
    const stream = gpt.responses.stream(responses.question(WEATHER));
    stream.on('response.output_text.delta', ({ delta }) => pieces.push(delta));
    return [await stream.finalResponse(), pieces];
  },
};

async function check(name, run) {
  let error = null;
  try {
    await run();
  } catch (failure) {
    error = String(failure?.stack ?? failure);
  }
  console.log(JSON.stringify({ check: name, error }));
}

for (const [name, api] of Object.entries({ messages, chat, responses })) {
  await check(`${name}_text`, async () => assert.equal(api.text(await api.ask('you')), 'Hello you, says Ada!'));
  await check(`${name}_tools_round`, async () => {
    assert.equal(api.text(await api.calls(await api.ask(WEATHER))), 'In Paris: rain');
  });
  await check(`${name}_stream`, async () => {
    const [answer, pieces] = await api.stream();
    assert.deepEqual(pieces, PIECES);
    assert.equal(api.text(await api.calls(answer)), 'In Paris: rain');
  });
  await check(`${name}_errors`, async () => {
    assert.equal(api.text(await api.ask(`retry ${name}`)), 'again');
    await assert.rejects(api.ask('refused'), refusal);
  });
}

// Idle connections would keep the process.
process.exit(0);
