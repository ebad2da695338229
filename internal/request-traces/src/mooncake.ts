import type { TraceLine } from './read-lines.ts';
import { hashedRequest, type TraceRequest } from './trace-request.ts';

const BLOCK_TOKENS = 512;

/** One request a line, in the order of the lines. */
export function mooncakeRequests(lines: readonly TraceLine[]): TraceRequest[] {
  return lines.map((each, line) => {
    const hashIds = each.ids('hash_ids');
    const promptLength = each.count('input_length');
    if (promptLength > hashIds.length * BLOCK_TOKENS || promptLength === 0) {
      throw each.fault(
        'input_length',
        `is ${promptLength}, and "hash_ids" names ${hashIds.length} blocks of ${BLOCK_TOKENS} tokens`,
      );
    }
    const outputLength = Math.max(1, each.count('output_length', 1));
    return hashedRequest({ hashIds, blockTokens: BLOCK_TOKENS, promptLength, outputLength, line });
  });
}
