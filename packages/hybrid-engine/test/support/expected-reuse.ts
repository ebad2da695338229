import type { ReusePolicy } from '@bufferwise/core-policy';
import type { ModelDescription } from '../../src/description/model-description.ts';

/** A request, and what requests before it have left. All in tokens. */
export interface ReuseCase {
  readonly model: ModelDescription;
  readonly policyOf: (layerId: number, role: string) => ReusePolicy;
  readonly tokensPerBlock: number;
  readonly chunkTokens: number;
  /** Prompt of the one request that published, cold, and whatever of its answer it computed. */
  readonly publishedPrompt: number;
  readonly publishedTokens: number;
  readonly promptLength: number;
  /** Tokens that the prompt has in common with what was published. */
  readonly path: number;
}

export interface ExpectedReuse {
  readonly reusedTokens: number;
  readonly recomputedTokens: number;
}

interface Buffer {
  readonly layerId: number;
  readonly kind: 'attention' | 'ssm';
  readonly role: string;
  readonly policy: ReusePolicy;
  readonly windowSize: number;
}

/**
 * What a request should reuse and compute again, told from the meaning of the policies alone: a request on a roomy engine on which one
 * other ran before. Slow and obvious: which rows are exact is tried token by token and layer by layer.
 */
export function expectedReuse(given: ReuseCase): ExpectedReuse {
  const { path, promptLength } = given;
  const buffers = buffersOf(given);
  const hasRecurrent = given.model.layers.some(({ mixer }) => mixer.kind === 'mamba2');
  const shared = buffers.some(({ policy }) => policy !== 'private') ? Math.min(path, promptLength - 1) : 0;
  const ends = publishedEnds(given, buffers);
  const complete = (buffer: Buffer, end: number) => isComplete(given, buffer, end, ends, hasRecurrent);
  const ofPolicy = (policy: ReusePolicy) => buffers.filter((buffer) => buffer.policy === policy);
  const longest = (most: number, needed: readonly Buffer[]) => {
    for (let end = most; end > 0; end--) if (needed.every((buffer) => complete(buffer, end))) return end;
    return 0;
  };

  const direct = longest(shared, ofPolicy('required'));
  const missing = buffers.filter(
    (buffer) => buffer.policy === 'private' || (buffer.policy === 'optional' && !complete(buffer, direct)),
  );
  if (missing.length === 0 || direct === 0) return { reusedTokens: direct, recomputedTokens: 0 };
  const all = ofPolicy('private').length > 0 ? 0 : longest(shared, buffers);
  let latest = direct - 1;
  while (latest > 0 && !fills(given, missing, latest, direct)) latest--;
  // State and windows that are not to be filled are there where the run begins: all that is optional is, when not by chance.
  const begunWith = buffers.filter(
    (buffer) =>
      buffer.policy === 'optional' &&
      (buffer.kind === 'ssm' || (buffer.windowSize !== Number.POSITIVE_INFINITY && !missing.includes(buffer))),
  );
  let from = longest(latest, ofPolicy('required'));
  if (!begunWith.every((buffer) => complete(buffer, from)))
    from = longest(latest, [...ofPolicy('required'), ...ofPolicy('optional')]);
  return from > all ? { reusedTokens: direct, recomputedTokens: direct - from } : { reusedTokens: all, recomputedTokens: 0 };
}

function buffersOf({ model, policyOf }: ReuseCase): Buffer[] {
  return model.layers.flatMap(({ mixer }, layerId): Buffer[] => {
    const roles = mixer.kind === 'attention' ? ['key', 'value'] : ['ssm_state', 'conv_state'];
    const kind = mixer.kind === 'attention' ? 'attention' : 'ssm';
    const windowSize = (mixer.kind === 'attention' && mixer.windowSize) || Number.POSITIVE_INFINITY;
    return roles.map((role) => ({ layerId, kind, role, policy: policyOf(layerId, role), windowSize }));
  });
}

/** Where steps of the publishing request ended that keep what is needed to continue there. */
function publishedEnds({ chunkTokens, publishedPrompt, publishedTokens, tokensPerBlock }: ReuseCase, buffers: readonly Buffer[]) {
  const ends = new Set([publishedPrompt - 1, publishedPrompt, publishedTokens]);
  for (let end = chunkTokens; end < publishedPrompt; end += chunkTokens) ends.add(end);
  if (buffers.some(({ kind, policy }) => kind === 'attention' && policy === 'optional')) {
    ends.add(Math.floor((publishedPrompt - 1) / tokensPerBlock) * tokensPerBlock);
  }
  return [...ends].filter((end) => end > 0);
}

/** Whether pages of a published buffer are all there for a request that continues at `end`. */
function isComplete(given: ReuseCase, buffer: Buffer, end: number, ends: readonly number[], onlyAtEnds: boolean): boolean {
  const { kind, policy, windowSize } = buffer;
  const { tokensPerBlock } = given;
  if (policy === 'private') return false;
  if (kind === 'ssm') return ends.includes(end);
  if (policy === 'optional' && end % tokensPerBlock !== 0) return false;
  if (windowSize === Number.POSITIVE_INFINITY || !onlyAtEnds) return true;
  // Beside recurrent state a step publishes of a window what is live at its end.
  const reached = ends.map((each) => (policy === 'optional' ? Math.floor(each / tokensPerBlock) * tokensPerBlock : each));
  for (let block = liveBlock(end, windowSize, tokensPerBlock); block * tokensPerBlock < end; block++) {
    const needed = Math.min(end, (block + 1) * tokensPerBlock);
    if (!reached.some((each) => each >= needed && liveBlock(each, windowSize, tokensPerBlock) <= block)) return false;
  }
  return true;
}

/** The first block that a request which continues at `end` looks back at: the next token sees `windowSize`, itself included. */
function liveBlock(end: number, windowSize: number, tokensPerBlock: number): number {
  return Math.max(0, Math.floor((end + 1 - windowSize) / tokensPerBlock));
}

/**
 * Whether a run over `[from, matched)` gives the missing buffers what the whole prefix would have. Missing attention begins as holes, all
 * else with what was published.
 */
function fills({ model, tokensPerBlock }: ReuseCase, missing: readonly Buffer[], from: number, matched: number): boolean {
  /** For each token of the run, whether its row is what it would be in a run from the first token. */
  let exact = new Array<boolean>(matched - from).fill(true);
  for (const [layerId, { mixer }] of model.layers.entries()) {
    const lost = missing.filter((buffer) => buffer.layerId === layerId);
    const exactFrom = (token: number) => token >= from && exact.slice(token - from).every(Boolean);
    if (mixer.kind === 'mamba2') {
      const begunWithout = (role: string) => lost.some((buffer) => buffer.role === role && buffer.policy === 'private');
      if (
        lost.some(({ role }) => role === 'ssm_state') &&
        (begunWithout('ssm_state') || begunWithout('conv_state') || !exactFrom(from))
      )
        return false;
      // The tail is the last inputs of the convolution, and these are rows of the run.
      if (lost.some(({ role }) => role === 'conv_state') && !exactFrom(matched - mixer.convWidth + 1)) return false;
      const begun = !begunWithout('ssm_state') && !begunWithout('conv_state');
      exact = exact.map((_, at) => begun && exact.slice(0, at + 1).every(Boolean));
      continue;
    }
    const { windowSize = Number.POSITIVE_INFINITY } = mixer;
    if (lost.length > 0 && !exactFrom(liveBlock(matched, windowSize, tokensPerBlock) * tokensPerBlock)) return false;
    exact = exact.map((own, at) => {
      // Full attention that is not missing looks at the pages of the whole prefix.
      if (windowSize === Number.POSITIVE_INFINITY) return own && lost.length === 0;
      const first = at - windowSize + 1;
      return exact.slice(Math.max(0, first), at + 1).every(Boolean) && (lost.length === 0 || first >= 0);
    });
  }
  return true;
}
