// The page of `rehearse report` in Chromium. FOLDER has page.html and large.html, MODULES Playwright.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const { chromium } = createRequire(`${process.env.MODULES}/`)('playwright-core');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM });
const url = name => pathToFileURL(`${process.env.FOLDER}/${name}`).href;
const FAILURE = 'details.failure';
let failed = 0;

/** Opens the page, calls `body`, and asserts that nothing was requested, asked or logged. */
async function test(name, body, { file = 'page.html', fragment = '', ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(5000);
  const events = [];
  page.on('console', message => events.push(message.text()));
  page.on('pageerror', error => events.push(error.message));
  page.on('dialog', dialog => { events.push(`dialog ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', request => request.url().split('#')[0] === url(file) || events.push(request.url()));
  try {
    await page.goto(url(file) + fragment);
    await body(page, events);
    assert.deepEqual(events, []);
    console.log(`✓ page: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`✗ page: ${name}`);
    console.error(error.stack);
  }
  await context.close();
}

const titles = page => page.locator(`${FAILURE}:visible > summary b`).allTextContents();
const filter = (page, text) => page.locator('#filter').fill(text);
const rows = page => page.locator('.area .matrix tbody tr:not(.hidden) th').allTextContents();
const heads = page => page.locator('#m0 ~ .brief .wide thead tr:last-child th[data-protocol]:visible').allTextContents();
const current = page => page.locator(`${FAILURE}.at`).getAttribute('id');
const fragment = page => new URL(page.url()).hash;

await test('the verdict, the counts and every part of a failure', async page => {
  assert.equal(await page.locator('h1 .verdict').textContent(), 'not everything could run');
  assert.match(await page.locator('.counts').first().textContent(), /^Scenarios 13 cells: 5 failed, 7 passed, 1 not applicable/);
  const groups = await page.locator('section:first-of-type h3').allTextContents();
  assert.deepEqual(groups.map(text => text.split(' ')[0]), ['Scenarios', 'What', 'Warnings', 'Slowest']);
  assert.ok(await page.locator('.untested').first().isVisible());
  const text = await page.locator('#f1').innerText();
  for (const part of ['hostile: call text', '4 places', 'hostile:5 in', 'http/2026-07-28', 'differs from the snapshot', 'scenarios/hostile.yaml:5',
    '5 ▶   - call: { tool: text }', '- snapshot + this run', '-       "text": "fine",', '+       "text": "<x-hostile', 'Traffic', '→', '←',
    '"method":"tools/call"', 'Do it again', 'rehearse run scenarios/hostile.yaml'])
    assert.ok(text.includes(part), `${part} is not in\n${text}`);
  const dead = page.locator(FAILURE, { hasText: 'dead: discover' });
  await dead.locator('summary').first().click();
  const lines = await dead.locator('.wire li').allInnerTexts();
  assert.ok(lines.some(line => /ms\s+stderr\s+<x-hostile>/.test(line)), lines.join('\n'));
  assert.match(await page.locator('#f1 .wire mark').textContent(), /^"text":"<x-hostile onclick/);
  assert.equal(await page.locator('#f3 .wire mark').first().textContent(), '<x-hostile>\\n::error::\\u{202e}[a](javascript:1) @all');
});

await test('hostile texts are texts', async page => {
  await page.locator('details').evaluateAll(all => all.forEach(it => { it.open = true; }));
  const state = await page.evaluate(() => ({
    tags: [...new Set([...document.body.querySelectorAll('*')].map(it => it.localName))].filter(it => /^x-|img|iframe|object/.test(it)),
    handlers: [...document.querySelectorAll('*')].flatMap(it => [...it.attributes]).filter(it => it.name.startsWith('on')).length,
    scripts: document.scripts.length,
    links: [...document.links].map(it => it.getAttribute('href')).filter(it => !/^(#|https:\/\/modelcontextprotocol\.io\/)/.test(it)),
    shown: document.body.innerText.split('<x-hostile').length,
  }));
  assert.ok(state.shown > 50, state.shown);
  assert.deepEqual(state, { tags: [], handlers: 0, scripts: 1, links: [], shown: state.shown });
});

await test('the policy refuses every request', async (page, events) => {
  const blocked = page.evaluate(() => new Promise(resolve => {
    const found = [];
    setTimeout(resolve, 5000, found);
    document.addEventListener('securitypolicyviolation', event => found.push(event.effectiveDirective) === 4 && resolve(found.sort()));
    fetch('data:,x').catch(() => {});
    new Image().src = 'data:image/png,x';
    document.body.append(Object.assign(document.createElement('script'), { textContent: 'document.title = "changed"' }));
    document.body.append(Object.assign(document.createElement('style'), { textContent: 'body { display: none }' }));
  }));
  assert.deepEqual(await blocked, ['connect-src', 'img-src', 'script-src-elem', 'style-src-elem']);
  assert.equal(await page.title(), '✗ hostile: call text and 8 more · rehearse');
  assert.ok(events.every(event => event.includes('Content Security Policy')), events.join('\n'));
  events.length = 0;
});

await test('the filter takes text, status, transport and protocol', async page => {
  const all = await titles(page);
  await filter(page, 'DEAD: standard');
  assert.deepEqual(await titles(page), ['dead: discover']);
  await filter(page, 'status:warning');
  assert.deepEqual([...new Set(await titles(page))], ['Structured content is also there as text.']);
  assert.ok((await rows(page)).includes('tools.call.structured-has-text') && !(await rows(page)).includes('fine'));
  await filter(page, 'transport:http');
  assert.deepEqual(await heads(page), ['2025-11-25', '2026-07-28']);
  assert.ok((await titles(page)).includes('hostile: call text') && !(await titles(page)).includes('dead: discover'));
  assert.equal(await page.locator('#m0 ~ .brief .wide colgroup + colgroup:not(.hidden)').count(), 1);
  await filter(page, 'protocol:2026');
  assert.deepEqual(await heads(page), ['2026-07-28', '2026-07-28', '2026-07-28', '2026-07-28']);
  assert.ok(!(await titles(page)).includes('dead: discover'));
  await filter(page, 'transport:stdio protocol:2025-11-25 status:failed');
  assert.deepEqual(await rows(page), ['dead', 'hostile', 'tools.call.structured-matches-schema']);
  assert.match(await page.locator('#found').textContent(), /^6 of \d+ causes, 3 of \d+ rows$/);
  await filter(page, 'no such text');
  assert.deepEqual([...await titles(page), ...await rows(page)], []);
  await filter(page, '');
  assert.deepEqual(await titles(page), all);
});

await test('the fragment has the state, and restores it', async page => {
  await filter(page, 'status:failed transport:stdio');
  await page.locator('#m0 ~ .brief .wide tr', { hasText: 'hostile' }).locator('a').first().click();
  assert.equal(fragment(page), '#q=status%3Afailed+transport%3Astdio&at=f1');
  const state = async () => [await page.locator('#filter').inputValue(), await titles(page), await rows(page), await current(page)];
  const before = await state();
  await page.reload();
  assert.deepEqual(await state(), before);
  await page.evaluate(() => { location.hash = '#f2'; });
  await page.waitForSelector('#f2.at');
  assert.deepEqual(await page.locator('#filter').inputValue(), '');
});

await test('an unknown fragment does no harm', page => page.waitForSelector('#filter'), { fragment: '#%' });

await test('a cell leads to its failure, the head to the table', async page => {
  await page.locator('#f1 > summary').click();
  await page.locator('#m0 ~ .brief .wide tr', { hasText: 'hostile' }).locator('a').nth(3).click();
  assert.deepEqual([fragment(page), await current(page)], ['#f1', 'f1']);
  const isInView = selector => page.locator(selector).evaluate(it => {
    const top = it.getBoundingClientRect().top;
    return top >= document.getElementById('tools').getBoundingClientRect().bottom && top < innerHeight;
  });
  assert.ok(await isInView('#f1') && await page.locator('#f1').evaluate(it => it.open));
  await page.locator('.counts a').first().click();
  assert.ok(await isInView('#s0'));
});

await test('keys', async page => {
  const focused = () => page.evaluate(() => document.activeElement.id);
  await page.keyboard.press('/');
  assert.equal(await focused(), 'filter');
  await page.keyboard.type('jok');
  assert.deepEqual(await titles(page), []);
  await page.keyboard.press('Escape');
  assert.deepEqual([await page.locator('#filter').inputValue(), await focused()], ['', '']);
  const walked = [];
  for (const key of ['j', 'j', 'k', 'k']) {
    await page.keyboard.press(key);
    walked.push(await current(page));
  }
  const last = await page.locator(FAILURE).last().getAttribute('id');
  assert.deepEqual(walked, ['f1', 'f2', 'f1', last]);
  assert.equal(fragment(page), `#${last}`);
  const isOpen = () => page.locator(`#${last}`).evaluate(it => it.open);
  await page.keyboard.press('o');
  assert.equal(await isOpen(), false);
  await page.keyboard.press('o');
  assert.equal(await isOpen(), true);
  await filter(page, 'dead');
  await page.keyboard.press('Enter');
  assert.equal(await page.locator(`${FAILURE}.at summary b`).first().textContent(), 'dead: discover');
});

await test('everything is there without scripts', async page => {
  assert.equal(await page.locator('#tools').isVisible(), false);
  const text = await page.locator('body').innerText();
  for (const part of ['not everything could run', '5 failed, 7 passed', 'hostile: call text', '-       "text": "fine",', 'Do it again'])
    assert.ok(text.includes(part), part);
  assert.equal(await page.locator('#m0 ~ .brief .wide tr', { hasText: 'hostile' }).locator('a').first().getAttribute('href'), '#f1');
  const dead = page.locator(FAILURE, { hasText: 'dead: discover' });
  await dead.locator('summary').first().click();
  assert.ok(await dead.locator('.wire').isVisible());
}, { javaScriptEnabled: false });

await test('the print has every failure and no controls', async page => {
  await page.emulateMedia({ media: 'print' });
  const closed = page.locator(`${FAILURE}:not([open]) .again`);
  assert.ok(await closed.count() > 0);
  assert.deepEqual(await closed.evaluateAll(all => all.filter(it => !it.checkVisibility()).length), 0);
  assert.equal(await page.locator('#tools').isVisible(), false);
});

for (const file of ['page.html', 'fuzz.html', 'diff.html', 'bench.html'])
  await test(`${file}: a narrow page scrolls only within its tables`, async page => {
    await page.locator('details').evaluateAll(all => all.forEach(it => { it.open = true; }));
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
    assert.ok(await page.locator('pre').evaluateAll(all => all.every(it => it.scrollWidth <= it.clientWidth)));
    if (file === 'page.html') assert.ok(await page.locator('.wide').evaluateAll(all => all.some(it => it.scrollWidth > it.clientWidth)));
  }, { file, viewport: { width: 360, height: 800 } });

for (const [file, parts] of [
  ['fuzz.html', ['1.0.0 failed', 'Fuzzing 1 bug, ', 'output-schema tool structured', 'rehearse fuzz --stdio', 'Inputs of each target', 'Not tested']],
  ['diff.html', ['→', 'failed', 'Changes ', ' breaking, ', 'breaking', 'text is new.']],
  ['bench.html', ['failed', 'Benchmark fail if p50 > 0ms: p50 ', 'per second']],
])
  await test(`${file}: the head, the reasons and what to do`, async page => {
    const text = await page.locator('body').innerText();
    for (const part of parts) assert.ok(text.includes(part), `${part} is not in\n${text}`);
  }, { file });

await test('every bar of a histogram is drawn, with marks at p50 and p99', async page => {
  const svg = page.locator('figure svg').first();
  assert.equal(await svg.locator('> rect.bar').count(), 40);
  assert.deepEqual((await svg.locator('> text').allTextContents()).filter(it => /^p/.test(it)).join(', '), 'p50, p99');
}, { file: 'bench.html' });

/** The texts whose contrast (WCAG 2.2, 1.4.3) with what is behind them is below 4.5, and how light the page is. */
function contrasts() {
  const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const luminance = color => {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const behind = element => {
    const color = getComputedStyle(element).backgroundColor;
    return color === 'rgba(0, 0, 0, 0)' && element.parentElement ? behind(element.parentElement) : color;
  };
  const ratio = (element, style) => {
    const [dark, light] = [luminance(element.closest('svg') ? style.fill : style.color), luminance(behind(element))].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const elements = [...document.body.querySelectorAll(':not(script)')].filter(it => [...it.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
  const low = elements.map(it => [ratio(it, getComputedStyle(it)), it.className, it.textContent.slice(0, 40)]).filter(([found]) => found < 4.5);
  const input = document.getElementById('filter');
  const placeholder = ratio(input, getComputedStyle(input, '::placeholder'));
  return { low, placeholder: placeholder >= 4.5, count: elements.length, page: luminance(behind(document.body)) };
}

for (const [colorScheme, isLight] of [['light', true], ['dark', false]])
  await test(`${colorScheme}: contrast, and no status by colour alone`, async page => {
    const { low, placeholder, count, page: light } = await page.evaluate(contrasts);
    assert.deepEqual(low, []);
    assert.ok(placeholder && count > 500, `${placeholder} ${count}`);
    assert.equal(light > 0.5, isLight);
    const marks = { failed: '✗', error: '!', warning: '▲', 'not-tested': '?', accepted: '≈', info: 'i', passed: '✓', 'not-applicable': '–' };
    for (const [status, mark] of Object.entries(marks)) {
      const texts = await page.locator(`td.${status}, .mark.${status}, .failure.${status} > summary .mark, .legend .${status}`).allTextContents();
      assert.deepEqual([...new Set(texts)], [mark], status);
      assert.ok(await page.locator(`.counts .${status}`).evaluateAll(all => all.every(it => /^\d+ [a-z]/.test(it.textContent))));
    }
  }, { colorScheme });

await test('10,000 cells are there and filtered within 2 s each', async page => {
  let best = Infinity;
  for (let attempt = 0; attempt < 3 && best > 2000; attempt += 1) {
    await page.reload();
    best = Math.min(best, await page.evaluate(() => performance.getEntriesByType('navigation')[0].loadEventEnd));
  }
  assert.ok(best > 0 && best < 2000, `loaded in ${best} ms`);
  assert.equal(await page.locator('.matrix td.failed').count(), 1250);
  const start = performance.now();
  await filter(page, 'status:failed transport:ws scenario-77');
  assert.equal(await page.locator('#found').textContent(), '11 of 1252 causes, 11 of 1250 rows');
  assert.ok(performance.now() - start < 2000, `filtered in ${performance.now() - start} ms`);
}, { file: 'large.html' });

await browser.close();
process.exit(failed ? 1 : 0);
