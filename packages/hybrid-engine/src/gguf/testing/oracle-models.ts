/// <reference types="node" />
import { readFileSync } from 'node:fs';

const FOLDER = new URL('../../../../../internal/test-kit/oracle-models/', import.meta.url);

/** Tiny models with random weights, one an architecture. */
export const ORACLE_MODELS = ['llama-103', 'olmo2-101', 'gemma3-101', 'mamba2-101', 'granitehybrid-101'] as const;

export type OracleModel = (typeof ORACLE_MODELS)[number];

/** Largest difference of a log-probability. The oracle rounds GELU to binary16; nobody here does. */
export const ORACLE_TOLERANCE: Readonly<Record<OracleModel, number>> = {
  'llama-103': 1e-3,
  'olmo2-101': 1e-3,
  'gemma3-101': 3e-2,
  'mamba2-101': 1e-3,
  'granitehybrid-101': 1e-3,
};

/** A prompt and what llama.cpp answers greedily. */
export interface OracleAnswer {
  prompt: number[];
  greedy: number[];
  /** Natural logarithm of the probability of every token before each step's choice, `[steps, vocabSize]`. */
  logProbabilities: Float32Array;
}

/** The bytes of an oracle model's GGUF file. */
export function oracleFile(name: OracleModel): Uint8Array {
  return readFileSync(new URL(`${name}.gguf`, FOLDER));
}

/** What an oracle model has to answer. */
export function oracleAnswers(name: OracleModel): OracleAnswer[] {
  const { prompts } = JSON.parse(readFileSync(new URL(`${name}.expected.json`, FOLDER), 'utf8')) as { prompts: OracleAnswer[] };
  const bytes = readFileSync(new URL(`${name}.logprobs.f32`, FOLDER));
  const all = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  const perPrompt = all.length / prompts.length;
  return prompts.map((prompt, i) => ({ ...prompt, logProbabilities: all.subarray(i * perPrompt, (i + 1) * perPrompt) }));
}
