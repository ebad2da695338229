import { ControlError } from '@bufferwise/adapter-disaggregation/nats-control';
import type { ReuseScope } from '@bufferwise/cache-manager';
import type { PromptRequest } from '@bufferwise/hybrid-engine';
import * as v from 'valibot';

/** What a worker has to know of a prompt that it reads for another one. */
export type PromptToRead = Pick<PromptRequest, 'turnBorders' | 'publish' | 'scope' | 'priority'> & {
  readonly prompt: Uint32Array;
};

const TOKEN_BYTES = 4;
const count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(2 ** 32 - 1));
const id = v.pipe(v.string(), v.regex(/^\d{1,20}$/));
const schema = v.object({
  tokens: v.pipe(v.string(), v.regex(/^[A-Za-z0-9+/]+={0,2}$/)),
  turnBorders: v.array(count),
  publish: v.boolean(),
  priority: v.pipe(v.number(), v.finite()),
  scope: v.object({ loraId: v.optional(id), salt: v.optional(id) }),
});

/** The body of a job. */
export function encodePrompt({ prompt, turnBorders = [], publish = true, scope, priority = 0 }: PromptToRead): string {
  const bytes = Buffer.alloc(prompt.length * TOKEN_BYTES);
  for (const [i, token] of prompt.entries()) bytes.writeUInt32LE(token, i * TOKEN_BYTES);
  const { loraId, salt } = scope ?? {};
  return JSON.stringify({
    tokens: bytes.toString('base64'),
    turnBorders,
    publish,
    priority,
    scope: { ...(loraId !== undefined && { loraId: `${loraId}` }), ...(salt !== undefined && { salt: `${salt}` }) },
  });
}

/**
 * What a body says. Whether the model has such tokens is the engine's to know.
 *
 * @throws {ControlError} `job-refused` on what no worker can have meant: no other one needs to try
 */
export function decodePrompt(body: string): PromptToRead {
  const read = v.safeParse(schema, parsed(body));
  const bytes = read.success ? Buffer.from(read.output.tokens, 'base64') : null;
  if (!read.success || bytes === null || bytes.length % TOKEN_BYTES !== 0)
    throw new ControlError(
      'job-refused',
      'the job says of its prompt what this version does not know; run the same version everywhere',
    );
  const { turnBorders, publish, priority, scope } = read.output;
  const prompt = Uint32Array.from({ length: bytes.length / TOKEN_BYTES }, (_, i) => bytes.readUInt32LE(i * TOKEN_BYTES));
  return { prompt, turnBorders, publish, priority, scope: scopeOf(scope) };
}

function scopeOf({ loraId, salt }: { loraId?: string; salt?: string }): ReuseScope | undefined {
  if (loraId === undefined && salt === undefined) return undefined;
  return { ...(loraId !== undefined && { loraId: BigInt(loraId) }), ...(salt !== undefined && { salt: BigInt(salt) }) };
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
