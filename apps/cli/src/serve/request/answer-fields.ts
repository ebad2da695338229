import { randomInt } from 'node:crypto';
import * as v from 'valibot';
import type { AnswerOrder } from '../answer/answer-order.ts';
import { badField } from '../http/api-error.ts';

const MAX_STOPS = 16;
const MAX_STOP_LENGTH = 1024;
const MAX_ANSWERS = 128;
const MAX_BIASES = 1024;
/** Most likely tokens in each place, at most. */
export const MAX_TOP_TOKENS = 20;
/** Seeds are counted up for several answers, and must stay exact. */
const SEEDS = 2 ** 48;
const HALF_CHARACTER = /\p{Surrogate}/u;

/** A field that may be left out or null. */
export const optional = <S extends v.GenericSchema>(schema: S) => v.nullish(schema, null);

export const wholeNumber = (min: number, max: number) => {
  const message = `must be a whole number from ${min} to ${max}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(min, message), v.maxValue(max, message));
};

const numberFrom = (min: number, max: number) => {
  const message = `must be a number from ${min} to ${max}`;
  return v.pipe(v.number(message), v.finite(message), v.minValue(min, message), v.maxValue(max, message));
};

const flag = v.boolean('must be true or false');

const stop = v.pipe(
  v.string('must be a text, or a list of texts'),
  v.check(
    (text) => text !== '' && text.length <= MAX_STOP_LENGTH && !HALF_CHARACTER.test(text),
    `must have 1 to ${MAX_STOP_LENGTH} characters`,
  ),
);

const SERVICE_TIERS = { flex: -1, auto: 0, default: 0, priority: 1 } as const;
const tierNames = Object.keys(SERVICE_TIERS) as (keyof typeof SERVICE_TIERS)[];

/** What both routes take. Those that OpenAI does not have are `top_k`, `ignore_eos`, `cache_salt`. */
export const answerFields = {
  model: optional(v.pipe(v.string('must be a text'), v.maxLength(1024, 'must have at most 1024 characters'))),
  n: optional(wholeNumber(1, MAX_ANSWERS)),
  max_tokens: optional(wholeNumber(1, 2 ** 31)),
  temperature: optional(numberFrom(0, 2)),
  top_p: optional(v.pipe(numberFrom(0, 1), v.gtValue(0, 'must be above 0, and at most 1'))),
  top_k: optional(wholeNumber(-1, 2 ** 31)),
  seed: optional(wholeNumber(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)),
  stop: optional(
    v.pipe(
      v.union(
        [
          v.pipe(
            stop,
            v.transform((text) => [text]),
          ),
          v.array(stop),
        ],
        `must be a text, or a list of texts, each of 1 to ${MAX_STOP_LENGTH} characters`,
      ),
      v.maxLength(MAX_STOPS, `must have at most ${MAX_STOPS} texts`),
    ),
  ),
  stream: optional(flag),
  stream_options: optional(v.object({ include_usage: optional(flag) }, 'must be an object')),
  ignore_eos: optional(flag),
  presence_penalty: optional(numberFrom(-2, 2)),
  frequency_penalty: optional(numberFrom(-2, 2)),
  logit_bias: optional(
    v.pipe(
      v.record(v.string(), numberFrom(-100, 100), 'must be an object'),
      v.check((biases) => Object.keys(biases).length <= MAX_BIASES, `must have at most ${MAX_BIASES} tokens`),
    ),
  ),
  service_tier: optional(v.picklist(tierNames, `must be one of ${tierNames.join(', ')}`)),
  cache_salt: optional(v.pipe(v.string('must be a text'), v.maxLength(1024, 'must have at most 1024 characters'))),
};

const answerSchema = v.object(answerFields);
type AnswerFields = v.InferOutput<typeof answerSchema>;

/**
 * @param numTopTokens as `AnswerOrder` has it; the routes ask for it differently
 * @param vocabSize    tokens that may be biased are below
 */
export function orderOf(fields: AnswerFields, numTopTokens: number | null, vocabSize: number): AnswerOrder {
  if (fields.stream_options !== null && fields.stream !== true)
    throw badField('stream_options', 'has no meaning without stream: true');
  const { top_k: topK, seed } = fields;
  return {
    numAnswers: fields.n ?? 1,
    maxTokens: fields.max_tokens,
    sampling: {
      temperature: fields.temperature ?? 1,
      topP: fields.top_p ?? 1,
      ...(topK !== null && topK > 0 && { topK }),
      seed: seed === null ? randomInt(SEEDS - 1) : ((seed % SEEDS) + SEEDS) % SEEDS,
    },
    stops: fields.stop ?? [],
    ignoreEnd: fields.ignore_eos ?? false,
    numTopTokens,
    edits: {
      bias: biasOf(fields.logit_bias ?? {}, vocabSize),
      presencePenalty: fields.presence_penalty ?? 0,
      frequencyPenalty: fields.frequency_penalty ?? 0,
    },
    priority: SERVICE_TIERS[fields.service_tier ?? 'auto'],
    cacheSalt: fields.cache_salt,
    model: fields.model,
    stream: fields.stream ?? false,
    includeUsage: fields.stream_options?.include_usage ?? false,
  };
}

function biasOf(biases: Readonly<Record<string, number>>, vocabSize: number): ReadonlyMap<number, number> {
  return new Map(
    Object.entries(biases).map(([key, bias]) => {
      const token = Number(key);
      if (/^\d{1,9}$/.test(key) && token < vocabSize) return [token, bias];
      throw badField(`logit_bias.${key}`, `names no token of this model; there are 0 to ${vocabSize - 1}`, 'invalid_value');
    }),
  );
}
