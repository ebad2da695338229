/**
 * What the last request to hold a page used it for, as far as it tells how likely others are to ask for it: which part of the
 * request it belongs to, and how long the answer was. One small integer, so that it fits a column.
 */
export type PageUse = number;

/** In the middle of a prompt. */
export const PROMPT_BODY = 0;
/** Near the end of a prompt, where a retry or the next turn begins. */
export const PROMPT_END = 1;
/** In an answer. */
export const ANSWER = 2;
/** Left behind by a sliding window, or by a later snapshot of the same path, at no place where paths are likely to part. */
export const PASSED = 3;
export const NUM_PARTS = 4;

/** Answers by length: below 16 tokens, 64, 256, 1,024, and longer. */
export const NUM_ANSWER_LENGTHS = 5;

export const NUM_USES = NUM_PARTS * NUM_ANSWER_LENGTHS;

/** @param answerLength tokens after the prompt so far */
export function pageUse(part: number, answerLength: number): PageUse {
  return part * NUM_ANSWER_LENGTHS + answerLengthClass(answerLength);
}

export function partOf(use: PageUse): number {
  return Math.floor(use / NUM_ANSWER_LENGTHS);
}

export function answerLengthOf(use: PageUse): number {
  return use % NUM_ANSWER_LENGTHS;
}

function answerLengthClass(tokens: number): number {
  if (tokens < 64) return tokens < 16 ? 0 : 1;
  if (tokens < 256) return 2;
  return tokens < 1024 ? 3 : 4;
}
