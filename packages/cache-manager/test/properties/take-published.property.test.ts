import { isLive, type LayerConfig, type LayerGroupId, type ReusePolicy } from '@bufferwise/core-policy';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { GroupReuseStatus, KvCache } from '../../src/index.ts';
import { dropPage } from '../../src/testing/index.ts';
import { full, type LayerShape, model, recurrent, Stage, windowed } from '../support/stage.ts';
import { combined, type Stamp, scopeStamp, withToken } from '../support/stamp.ts';

const policies: readonly ReusePolicy[] = ['required', 'optional', 'private'];
const anyShape: fc.Arbitrary<LayerShape> = fc.oneof(
  fc.constantFrom(...policies).map((policy) => full(policy)),
  fc.tuple(fc.constantFrom(3, 5, 9), fc.constantFrom(...policies), fc.constantFrom(0, 3)).map((each) => windowed(...each)),
  fc.constantFrom(...policies).map((policy) => recurrent(policy)),
);
const anyTokens = fc.array(fc.constantFrom(0, 0, 0, 1), { minLength: 1, maxLength: 22 });
const anyArrival = fc.record({
  shapes: fc.array(anyShape, { minLength: 1, maxLength: 4 }),
  hasState: fc.boolean(),
  commitMinSnapshot: fc.boolean(),
  enablePartialReuse: fc.boolean(),
  hostTier: fc.boolean(),
  donors: fc.array(fc.record({ tokens: anyTokens, cuts: fc.array(fc.integer({ min: 1, max: 22 }), { maxLength: 4 }) }), {
    maxLength: 4,
  }),
  drops: fc.array(fc.record({ donor: fc.nat(4), block: fc.nat(5), group: fc.nat(3) }), { maxLength: 6 }),
  asked: anyTokens,
});

/** Writes what a request lacks, as if it had come from elsewhere, and checks the rest. */
function fill(stage: Stage, kv: KvCache, tokens: readonly number[], status: readonly GroupReuseStatus[]): void {
  const prefix: Stamp[] = [scopeStamp(undefined)];
  for (const token of tokens) prefix.push(withToken(prefix[prefix.length - 1], token));
  for (const buffer of stage.layers.flat()) {
    const { endpoint, coverage } = status[buffer.group];
    const stamp = (count: number) => combined(prefix[count], buffer.identity);
    const lifecycle = stage.manager.lifecycles.get(buffer.group);
    if (lifecycle.kind === 'ssm') {
      const page = buffer.statePage(kv);
      if (endpoint === tokens.length) buffer.expectState(page, stamp(tokens.length), 'the state that was taken');
      else buffer.writeState(page, stamp(tokens.length));
      continue;
    }
    const table = buffer.table(kv);
    const { tokensPerBlock } = stage.config;
    for (let token = 0; token < tokens.length; token++) {
      const isCovered = coverage.some(([begin, end]) => begin <= token && token < end);
      if (isCovered) buffer.expect(table, token, stamp(token + 1), `token ${token} that was taken`);
      else if (isLive(lifecycle, Math.floor(token / tokensPerBlock), tokens.length, tokensPerBlock))
        buffer.write(table, token, stamp(token + 1));
    }
  }
}

const runs = Number(process.env.BUFFERWISE_ARRIVALS ?? 400);

test('what is taken is what was published, and what is filled beside it reaches others whole', async () => {
  await fc.assert(
    fc.asyncProperty(anyArrival, async ({ shapes, hasState, donors, drops, asked, hostTier, ...more }) => {
      const all = hasState ? [...shapes, recurrent()] : shapes;
      const isStateful = all.some(({ type }) => type === 'ssm');
      const { layers, ...input } = model(all, { ...more, commitMinSnapshot: more.commitMinSnapshot || isStateful });
      const tiers = [...input.tiers, ...(hostTier ? [{ tier: 'host' as const, quota: 8 << 20 }] : [])];
      const stage = new Stage({ ...input, layers: layers as LayerConfig[], tiers });
      for (const { tokens, cuts } of donors) {
        const counts = [...new Set([...cuts.filter((cut) => cut < tokens.length), tokens.length])].sort((a, b) => a - b);
        await stage.donate(tokens, counts);
      }
      for (const { donor, block, group } of drops) {
        if (donors.length === 0) break;
        const { tokens } = donors[donor % donors.length];
        dropPage(stage.manager, { tokens, block, groupId: group % stage.groups.length });
      }
      const kv = stage.manager.createKvCache({ tokens: asked });
      const optional = kv.reuseStatus.filter(({ policy }) => policy === 'optional');
      const optionalReuseGroups = optional.filter(({ complete }) => complete).map(({ groupId }) => groupId);
      const rebuiltGroups = optional.filter(({ complete }) => !complete).map(({ groupId }) => groupId);
      expect(await kv.resume({ optionalReuseGroups, rebuiltGroups })).toBe(true);
      expect(kv.resize(asked.length, asked.length)).toBe(true);
      const rest = asked.slice(kv.numCommittedTokens);
      const status = kv.takePublished(rest);
      for (const { groupId, complete } of kv.reuseStatus)
        if (complete && kv.numCommittedTokens === asked.length) expect(status[groupId].complete).toBe(true);
      fill(stage, kv, asked, status);
      kv.commit(rest, { snapshot: true });
      kv.close();
      for (let length = 1; length <= asked.length; length++) {
        const reader = stage.open(asked.slice(0, length));
        const select = reader.kv.reuseStatus.filter(({ policy, complete }) => policy === 'optional' && complete);
        expect(await reader.resume({ optionalReuseGroups: select.map(({ groupId }) => groupId as LayerGroupId) })).toBe(true);
        reader.close();
      }
      expect(stage.manager.statistics().openRequests).toBe(0);
      await stage.manager.close();
    }),
    { numRuns: runs },
  );
});
