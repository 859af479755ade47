import type { TestAPI } from "vitest";

import type { startMock, startModel } from "./index.js";

/** `test` of vitest with functions that start mocks and models. They are stopped after each test. */
export const test: TestAPI<{ startMock: typeof startMock; startModel: typeof startModel }>;
