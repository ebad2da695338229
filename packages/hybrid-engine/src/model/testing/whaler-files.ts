/// <reference types="node" />
import { readFileSync } from 'node:fs';
import type { ModelFiles } from '../model.ts';

const FOLDER = new URL('../../../../../models/whaler-1m/', import.meta.url);

/** One prompt of the demo model and what its exported weights answer in float32, without a cache. */
export interface ExpectedAnswer {
  name: string;
  text: string;
  /** The prompt's tokens. */
  ids: number[];
  /** The first 32 logits after the prompt. */
  lastLogits: number[];
  argmax: number;
  /** First four channels of the residual stream after each layer, at the prompt's last token. */
  layerOutputsLastTokenFirst4: number[][];
  /** The next tokens, each the most likely one. */
  greedy: number[];
  greedyText: string;
  /** Smallest gap between the best and the second logit along `greedy`. */
  margin: number;
}

/** The files of the demo model, for tests. */
export function whalerFiles(): ModelFiles {
  return {
    config: readFileSync(new URL('config.json', FOLDER)),
    tokenizer: readFileSync(new URL('tokenizer.json', FOLDER)),
    weights: readFileSync(new URL('model.safetensors', FOLDER)),
  };
}

/** What the demo model has to answer, for tests. */
export function whalerAnswers(): ExpectedAnswer[] {
  return JSON.parse(readFileSync(new URL('expected.json', FOLDER), 'utf8')).prompts;
}
