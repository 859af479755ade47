import { test as base } from "vitest";

import { startMock, startModel } from "./index.js";

const stoppedAfterTest = (start) => async ({}, use) => {
  const started = [];
  await use((...args) => {
    const it = start(...args);
    started.push(it);
    return it;
  });
  for (const { value } of await Promise.allSettled(started)) await value?.stop();
};

export const test = base.extend({ startMock: stoppedAfterTest(startMock), startModel: stoppedAfterTest(startModel) });
