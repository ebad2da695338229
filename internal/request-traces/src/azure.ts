import { TraceError } from './trace-error.ts';
import { hashedRequest, type TraceRequest } from './trace-request.ts';

/** Far above the hash ids of blocks that other traces name. */
const FIRST_ID = 0x20000000;

/** Lengths alone, `TIMESTAMP,ContextTokens,GeneratedTokens`: every prompt is its own, so nothing is shared. */
export function azureRequests(text: string): TraceRequest[] {
  const rows = text.split('\n').slice(1);
  return rows.flatMap((row, line) => {
    if (row.trim() === '') return [];
    const [, context, generated] = row.split(',').map(Number);
    if (!Number.isSafeInteger(context) || !Number.isSafeInteger(generated) || context < 1) {
      throw new TraceError(`line ${line + 2} has no lengths; expected TIMESTAMP,ContextTokens,GeneratedTokens`);
    }
    const outputLength = Math.max(1, generated);
    return [hashedRequest({ hashIds: [FIRST_ID + line], blockTokens: context, promptLength: context, outputLength, line })];
  });
}
