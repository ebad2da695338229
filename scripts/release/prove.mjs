import { Consumer } from './consumer.mjs';
import { leaksIn } from './leaks.mjs';
import { proveInNode, proveWithoutModel } from './prove-in-node.mjs';
import { proveInPages } from './prove-in-pages.mjs';
import { proveTypes } from './prove-types.mjs';

/**
 * Installs packed packages into a project outside of the workspace and uses them there: on Node in both kinds of modules, through the command, by
 * TypeScript, and in pages of two bundlers.
 *
 * @param {import('./pack.mjs').Pack[]} packs
 * @returns {Promise<string[]>} what does not work, one sentence each
 */
export async function prove(packs) {
  const consumer = new Consumer();
  try {
    await consumer.install(packs);
    const leaks = leaksIn(consumer, packs);
    const proofs = await Promise.allSettled([proveInNode(consumer), proveTypes(consumer, packs), proveInPages(consumer)]);
    const broken = proofs.find(({ status }) => status === 'rejected');
    if (broken !== undefined) throw broken.reason;
    return [...leaks, ...proofs.flatMap(({ value }) => value), ...(await proveWithoutModel(consumer))];
  } finally {
    consumer.remove();
  }
}
