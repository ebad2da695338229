import { BufferwiseError } from '@bufferwise/core-policy';
import type { KvCache, KvCacheManager } from '../../src/index.ts';
import { dropPage } from '../../src/testing/index.ts';
import type { Operation } from './operation.ts';

/** Runs one operation and says what it answered, in the words of the vectors. */
export async function runOperation(
  manager: KvCacheManager,
  requests: Map<string, KvCache>,
  operation: Operation,
): Promise<unknown> {
  const scope = operation.scope ?? undefined;
  const request = requests.get(operation.name) as KvCache;
  switch (operation.op) {
    case 'create': {
      const created = manager.createKvCache({ tokens: operation.tokens, scope });
      requests.set(operation.name, created);
      const reuseStatus = created.reuseStatus.map(({ groupId, ...rest }) => ({ group: groupId, ...rest }));
      return { numCommittedTokens: created.numCommittedTokens, reuseStatus };
    }
    case 'resume': {
      const { optionalReuseGroups, rebuiltGroups } = operation;
      return answer(() => request.resume({ optionalReuseGroups, rebuiltGroups }));
    }
    case 'resize':
      return answer(() => request.resize(operation.capacity, operation.historyLength));
    case 'commit':
      return request.commit(operation.tokens, { end: operation.end, snapshot: operation.snapshot });
    case 'suspend':
      return request.suspend();
    case 'stopCommitting':
      return request.stopCommitting();
    case 'close':
      return request.close();
    case 'probe':
      return { value: manager.probeReuse(operation.tokens, scope) };
    case 'drop':
      return { value: dropPage(manager, { tokens: operation.tokens, block: operation.block, groupId: operation.group, scope }) };
  }
}

async function answer(call: () => boolean | Promise<boolean>): Promise<unknown> {
  try {
    return { value: await call() };
  } catch (error) {
    if (BufferwiseError.isInstance(error)) return { error: error.name };
    throw error;
  }
}
