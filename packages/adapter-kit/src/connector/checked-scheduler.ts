import { AdapterError } from '../errors.ts';
import type { BlocksByGroup, ConnectorLayout, ConnectorScheduler } from './kv-connector.ts';

/** What was said of a request so far. */
interface Known {
  readonly numTokens: number;
  /** The last lookup that had an answer, until it was taken up. */
  offer: { readonly computedTokens: number; readonly tokens: number; readonly async: boolean } | undefined;
  /** An asynchronous load of it is under way: until a worker reports its end. */
  isLoading: boolean;
}

/** The deciding side of `checkedConnector`. */
export function checkedScheduler(
  name: string,
  scheduler: ConnectorScheduler,
  layout: ConnectorLayout,
  checkOpen: () => void,
): ConnectorScheduler {
  const requests = new Map<number, Known>();
  const known = (id: number): Known => {
    checkOpen();
    const request = requests.get(id);
    if (request !== undefined) return request;
    throw new AdapterError(
      'unknown-request',
      `${name}: request ${id} is not known, or has finished; tell of it with onNewRequest`,
    );
  };
  const argument = (call: string, why: string) => new AdapterError('invalid-connector-argument', `${name}, ${call}: ${why}`);
  const order = (call: string, why: string) => new AdapterError('call-order', `${name}, ${call}: ${why}`);
  const checkCount = (call: string, what: string, value: number, most = Number.MAX_SAFE_INTEGER) => {
    if (Number.isSafeInteger(value) && value >= 0 && value <= most) return;
    throw argument(call, `${what} are ${value}; a whole number from 0 to ${most}`);
  };

  /** @param numTokens that blocks must be there for */
  const checkBlocks = (call: string, blocks: BlocksByGroup, numTokens: number) => {
    const offered = new Set<number>(layout.groups.map(({ groupId }) => groupId));
    blocks.forEach((slots, groupId) => {
      if (slots !== undefined && !offered.has(groupId))
        throw argument(call, `blocks of group ${groupId}, which was not registered`);
    });
    for (const { groupId, lifecycle } of layout.groups) {
      const slots = blocks[groupId];
      if (slots === undefined) throw argument(call, `no blocks of group ${groupId}; -1 stands where there is no page`);
      const odd = slots.find((slot) => !Number.isSafeInteger(slot) || slot < -1);
      if (odd !== undefined) throw argument(call, `slot ${odd} in group ${groupId}; whole numbers from 0 on, -1 for none`);
      const held = slots.filter((slot) => slot >= 0);
      if (new Set(held).size < held.length) throw argument(call, `a slot stands twice in group ${groupId}`);
      const isState = lifecycle.kind === 'ssm';
      const numBlocks = isState ? 1 : Math.ceil(numTokens / layout.tokensPerBlock);
      if (isState ? slots.length !== 1 : slots.length < numBlocks)
        throw argument(call, `${slots.length} blocks of group ${groupId}; ${numBlocks} are for ${numTokens} tokens`);
    }
  };

  return {
    onNewRequest(request) {
      checkOpen();
      checkCount('onNewRequest', 'ids', request.id);
      if (requests.has(request.id)) throw order('onNewRequest', `request ${request.id} is known and has not finished`);
      scheduler.onNewRequest(request);
      requests.set(request.id, { numTokens: request.tokens.length, offer: undefined, isLoading: false });
    },
    lookup(id, computedTokens) {
      const request = known(id);
      checkCount('lookup', 'tokens that are there', computedTokens, request.numTokens);
      if (request.isLoading) throw order('lookup', `request ${id} waits for its load; ask again when it was reported as loaded`);
      const answer = scheduler.lookup(id, computedTokens);
      request.offer = answer.state === 'known' ? { computedTokens, tokens: answer.tokens, async: answer.async } : undefined;
      return answer;
    },
    allocated(id, blocks, computedTokens, externalTokens) {
      const request = known(id);
      checkCount('allocated', 'tokens that are there', computedTokens, request.numTokens);
      checkCount('allocated', 'tokens to be loaded', externalTokens, request.numTokens - computedTokens);
      checkBlocks('allocated', blocks, computedTokens + externalTokens);
      const { offer } = request;
      if (request.isLoading)
        throw order('allocated', `request ${id} waits for its load; call it again when it was reported as loaded`);
      if (externalTokens > 0) {
        if (offer === undefined || offer.computedTokens !== computedTokens)
          throw order('allocated', `no lookup of request ${id} with ${computedTokens} tokens has been answered; ask first`);
        if (offer.tokens !== externalTokens)
          throw argument('allocated', `${externalTokens} tokens to be loaded, and ${offer.tokens} were offered; all or 0`);
      }
      scheduler.allocated(id, blocks, computedTokens, externalTokens);
      request.offer = undefined;
      request.isLoading = externalTokens > 0 && (offer?.async ?? false);
    },
    willWrite(id, blocks, writtenTokens) {
      const request = known(id);
      checkCount('willWrite', 'tokens written', writtenTokens);
      checkBlocks('willWrite', blocks, writtenTokens);
      if (request.isLoading) throw order('willWrite', `request ${id} waits for its load, and cannot be in a step`);
      scheduler.willWrite(id, blocks, writtenTokens);
    },
    buildStep() {
      checkOpen();
      return scheduler.buildStep();
    },
    update(report) {
      checkOpen();
      scheduler.update(report);
      for (const id of report.finished.loaded) {
        const request = requests.get(id);
        if (request !== undefined) request.isLoading = false;
      }
    },
    requestFinished(id, blocks) {
      known(id);
      checkBlocks('requestFinished', blocks, 0);
      const answer = scheduler.requestFinished(id, blocks);
      requests.delete(id);
      return answer;
    },
  };
}
