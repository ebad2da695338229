import { at, type Coverage, ids, lettered, reason } from './covered.ts';

const POLICIES = 'test/scenarios/policies';
const SCRATCH = 'test/scenarios/scratch';
const MATCHING = 'test/scenarios/matching';
const STATE = 'test/scenarios/recurrent-state';
const ROOM = 'test/scenarios/room';
const WINDOWS = 'test/scenarios/windows';
const TIERS = 'test/scenarios/tiers';
const STORIES = 'test/scenarios/tier-stories';
const MOVING = 'test/scenarios/moving-pages';
const PLANS = 'test/scenarios/planned-drop';
const STATISTICS = 'test/statistics/iteration-statistics';
const TOLD = 'test/events/told-events';
const TIER_EVENTS = 'test/events/tier-events';
const RECORDER = 'src/events/event-recorder';
const V1 = 'src/events/v1-block-hash';
const CONFIGS = '/core-policy/test/scenarios/policies-and-lifecycles';
const LAYOUT = '/scratch-allocator/src/layout/storage-layout';
const PLAN = '/scratch-allocator/src/planning/plan-slots';
const BATCH = '/scratch-allocator/src/planning/batch-slots';
const CLAMP = '/scratch-allocator/src/planning/clamp-max-sequence-length';
const CONVERTER = '/scratch-allocator/src/page-index-converter';

const noSparseFlag = reason(
  'a label (`sparsityGroup`) parts layers here; there is no flag for a sparse buffer that could be misused',
);

/** Every case of the behaviour reference that has an id, in its order. */
export const BEHAVIOUR_IDS: readonly string[] = [
  ...lettered('P1', 'abcdef'),
  ...lettered('P2', 'abc'),
  'P3',
  'P4',
  'P5',
  'P6',
  ...lettered('P7', 'abcdefghijk'),
  ...ids('P', 18).slice(7),
  ...ids('L', 12),
  ...ids('S', 19),
  ...ids('K', 7),
  ...ids('T', 14),
  ...ids('M', 17),
  ...ids('Q', 14),
  ...ids('A', 18),
  ...ids('E', 16),
];

const privateReuse = at(POLICIES, 'stay unpublished after global reuse at');
const optionalWindow = at(POLICIES, 'keeps the pages of its last whole block for whoever selects it');
const lostVictim = at(POLICIES, 'is incomplete for newcomers, and whole for who claimed it before');

export const BEHAVIOUR_CASES: Readonly<Record<string, Coverage>> = {
  // Policies.
  P1a: privateReuse,
  P1b: privateReuse,
  P1c: privateReuse,
  P1d: privateReuse,
  P1e: privateReuse,
  P1f: privateReuse,
  P2a: at(POLICIES, 'share the global pages of the first to commit'),
  P2b: at(POLICIES, 'keep their private pages, and blocks that have left the window stay empty'),
  P2c: at(POLICIES, 'share optional pages too'),
  P3: at(POLICIES, 'leaves no stale page or index behind, with a'),
  P4: at(STORIES, 'a hybrid request commits, gives way, comes back and closes; its prefix is whole'),
  P5: at(SCRATCH, 'can be taken and given back any number of times without losing a slot'),
  P6: [
    ...at(POLICIES, 'a policy keeps its pages in pools of its own'),
    ...at(STORIES, 'keeps its pages in pools of its own in colder tiers too'),
  ],
  P7a: optionalWindow,
  P7b: optionalWindow,
  P7c: optionalWindow,
  P7d: optionalWindow,
  P7e: at(POLICIES, 'that is declined is replaced by fresh pages, and stays there for others'),
  P7f: lostVictim,
  P7g: lostVictim,
  P7h: lostVictim,
  P7i: [...lostVictim, ...at(STATISTICS, 'that are selected count as hits once, also when a page has left the tree since')],
  P7j: [...lostVictim, ...at(STATISTICS, 'that are selected count as hits once, also when a page has left the tree since')],
  P7k: lostVictim,
  P8: [
    ...at(POLICIES, 'that lost a page costs its neighbours nothing'),
    ...at(STORIES, 'a page on its way back outlives that another group loses its page of the same block'),
  ],
  P9: at(POLICIES, 'that is declined frees its own slots for the same resume when nothing else is free'),
  P10: at(POLICIES, 'gets its page back from a twin that still has one, in the slot where it is'),
  P11: at(POLICIES, 'is made from a status that names every group'),
  P12: at(POLICIES, 'is refused and changes nothing'),
  P13: at(POLICIES, 'takes the selected pages as they are and fresh ones for the rest, also after suspending'),
  P14: at(POLICIES, 'takes the selected pages as they are and fresh ones for the rest, also after suspending'),
  P15: [...at(POLICIES, 'is never complete inside a block'), ...privateReuse],
  P16: at(
    POLICIES,
    'that is incomplete never shortens the match',
    'takes the selected pages as they are and fresh ones for the rest',
  ),
  P17: at(POLICIES, 'that found no room is no choice: the retry may choose anew, with every claim still held'),
  P18: reason('which policies a consumer names for its encoder and decoder is that consumer’s choice'),

  // Configuration and lifecycles.
  L1: noSparseFlag,
  L2: noSparseFlag,
  L3: noSparseFlag,
  L4: [
    ...at(CONFIGS, 'L4: two of four layers'),
    ...at(LAYOUT, 'never cross sparsity labels: layers of one label lie next to each other'),
  ],
  L5: [...at(CONFIGS, 'L5: alternating windows'), ...at(LAYOUT, 'are one for each sparsity label when only windows differ')],
  L6: at(CONFIGS, 'L6: 5 and 8 sink tokens'),
  L7: at(LAYOUT, 'lays buffers of equal expanded size side by side, in config order'),
  L8: at(CONFIGS, 'L8: recurrent state with commitMinSnapshot'),
  L9: at(CONFIGS, 'L9:'),
  L10: at(CONFIGS, 'L10: maxUtilForResume'),
  L11: at('src/tree/multimodal-tokens', 'is a digest of another size'),
  L12: at(ROOM, 'a block of several pages keeps its content through reuse, where layers cut it differently'),

  // Storage sizing.
  S1: at(PLAN, 'is what whole grains allow: slots of 2 MiB - 1 and 2 MiB in five grains'),
  S2: at(PLAN, 'is rounded up to whole grains'),
  S3: at(PLAN, 'is one when two lifecycles share the group'),
  S4: at(PLAN, 'follows the slot sizes while no request has outrun the window'),
  S5: at(PLAN, 'shrinks for a window that long requests have outrun'),
  S6: at(PLAN, 'grows again for a batch that must always fit'),
  S7: at(PLAN, 'gives way to the batches that must fit, also where it was asked for by ratio'),
  S8: at(BATCH, 'counts recurrent state by the request, and no block of an empty one'),
  S9: at(PLAN, 'ask for recurrent state by the request, whatever the gate'),
  S10: [
    ...at(PLAN, 'leave room for what the admission gate keeps unused'),
    ...at(STORIES, 'is there for every request of the batch: 32 requests of one token each go on at once'),
  ],
  S11: [
    ...at(PLAN, 'count a system prompt of %i tokens once'),
    ...at(STORIES, 'is there for a batch that shares a prompt of %i tokens, once that was committed'),
  ],
  S12: at(PLAN, 'is smaller for a window whose prefill uses scratch'),
  S13: at(PLAN, 'is unchanged by a batch that fits anyway'),
  S14: at(
    CLAMP,
    'allows whole blocks, and nothing when not even one fits',
    'adds up the lifecycles of a pool group and puts the other requests aside',
  ),
  S15: at(CLAMP, 'a window of one block runs on in one slot'),
  S16: at(CLAMP, 'adds up the lifecycles of a pool group and puts the other requests aside'),
  S17: at(PLAN, 'end in a plan however odd the sizes are'),
  S18: at(CONVERTER, 'count from the buffer when shared, from the pool when per layer'),
  S19: at(CONVERTER, 'goes with per-layer indices only'),

  // Scratch.
  K1: at(SCRATCH, 'of eight layers shares one slot between the blocks it outruns, with a margin of'),
  K2: at(SCRATCH, 'shares slots in the short window only, and again after suspending, with a margin of'),
  K3: at(SCRATCH, 'shares slots in the short window only, and again after suspending, with a margin of'),
  K4: at(SCRATCH, 'of a long prompt takes far fewer slots than blocks, and leaves none behind'),
  K5: reason('scratch is on for every request when it is configured; there is no switch for one'),
  K6: at(
    SCRATCH,
    'leave the pages of the last blocks to a reader that ends inside one',
    'without a margin refuses to go back, to grow from the middle, and to commit in parts',
  ),
  K7: reason('a device has one queue: there is no other one that would have to wait for a recycled slot'),

  // Tree and match.
  T1: at(
    MATCHING,
    'is a border: nothing is matched across, and everything within',
    'is told by its values: 7 and 7n are one, `{}` and none are one',
  ),
  T2: at(MATCHING, 'leaves the end of the earlier one where it was'),
  T3: at(MATCHING, 'gives back the end of the earlier one, though that came later'),
  T4: at(MATCHING, 'covers only half of a block that no token reads'),
  T5: at(MATCHING, 'widens what the tail is good for, and a shorter one does not narrow it'),
  T6: at(MATCHING, 'leaves the end of the earlier one where it was'),
  T7: at(MATCHING, 'takes a tail over from a request that'),
  T8: at(MATCHING, 'takes a tail over from a request that'),
  T9: at(MATCHING, 'to the last one they share'),
  T10: at(WINDOWS, 'a required window keeps what a match inside its last blocks needs, and no more'),
  T11: at(MATCHING, 'in whatever array they come'),
  T12: at(MATCHING, 'however many siblings there are: one token in common is one token'),
  T13: at(MATCHING, 'of them where the engine asked for a backoff'),
  T14: at(MATCHING, 'neither clearing nor closing is possible with'),

  // Recurrent state.
  M1: at(STATE, 'is nothing in an empty tree'),
  M2: at(STATE, 'ends at the last snapshot before the tokens differ'),
  M3: at(STATE, 'ends at the last snapshot before the tokens differ'),
  M4: at(STATE, 'ends at a snapshot inside a block exactly'),
  M5: at(STATE, 'of three turns of one prompt stand side by side'),
  M6: at(STATE, 'of one request in one block serve forks at each of them, also once the block is full'),
  M7: at(STATE, 'move with their tail into the longer block'),
  M8: at(STATE, 'of a request that ends are its own pages, not copies'),
  M9: at(STATE, 'are taken only when the state is at the committed count, unless the caller promises it'),
  M10: at(PLANS, 'a snapshot goes with the last of its plans'),
  M11: at(PLANS, 'every page of a window is planned once, and the snapshot'),
  M12: at(PLANS, 'a shorter end goes without the longer one'),
  M13: [
    ...at(STATE, 'a pool of nothing but state may be full beyond the limit for growing pools'),
    ...at(TIERS, 'state that fills its pool does not keep a request out while a slot can be had'),
  ],
  M14: [
    ...at(STATE, 'resumes although its snapshot has the lowest priority of all'),
    ...at(TIERS, 'the snapshot that a request starts from is not the one evicted for it'),
  ],
  M15: [
    ...at(STATE, 'of suspended requests that fill the pool makes a newcomer wait, unchanged'),
    ...at(TIERS, 'but not where every tier is full of held pages, and nothing has changed then'),
  ],
  M16: at(STATE, 'commits on although a hundred others pushed its snapshot out'),
  M17: at(STATE, 'finds its state in the slot where it was'),

  // Requests, memory that runs out, tiers.
  Q1: at(ROOM, 'a request has one index a block, as many as its capacity asks for'),
  Q2: reason('callers lend no index buffers: a request shows a view of its own'),
  Q3: at(TIERS, 'as long as there is room for it; a longer one is refused'),
  Q4: at(ROOM, 'a busy group makes a newcomer wait although the others are idle'),
  Q5: at(MATCHING, 'leave nothing that cannot be evicted'),
  Q6: at(TIERS, 'shrink around two suspended requests, of which one resumes; grow, and prefetch lets both resume'),
  Q7: at(TIERS, 'shrink around two suspended requests, of which one resumes; grow, and prefetch lets both resume'),
  Q8: at(
    'test/scenarios/rebalancing',
    'attention that evicts what is asked for again takes the room that state leaves idle, and the hits come',
  ),
  Q9: at('test/scenarios/rebalancing', 'with nothing to move a call says false and changes nothing, and so with one pool group'),
  Q10: [
    ...at(MOVING, 'slots that were never used go at once, and used ones in a row with them'),
    ...at('/scratch-allocator/src/slot-allocator', 'shrinks at once to a size that no used slot is beyond'),
  ],
  Q11: [
    ...at(STORIES, 'ends at its size when the upper half of slots that all were in use is free again'),
    ...at('/scratch-allocator/src/slot-allocator', 'shrinks once the high slots have come back'),
  ],
  Q12: at(TIERS, 'nothing that is not needed among what comes back'),
  Q13: at(MATCHING, 'replaces a partial tail, and both requests close cleanly'),
  Q14: at(WINDOWS, 'stale blocks that a received history never allocates do not stand in the way of a commit'),

  // Statistics.
  A1: at(
    STATISTICS,
    'is taken back from what it was counted as',
    'in one request: each further beam takes what it has to itself, and growth counts for every beam',
  ),
  A2: at(STATISTICS, 'stays when what grew behind it is given back'),
  A3: reason('reuse is counted by group; the contract asks for no numbers by the tier that a page came from'),
  A4: at(STATISTICS, 'for the prompt is missed, growth behind it is generation'),
  A5: at(STATISTICS, 'that is given back before the numbers are taken does not count'),
  A6: at(STATISTICS, 'adds nothing when it is repeated, refused, or stays inside a block'),
  A7: at(STATISTICS, 'of a match that ends inside a block is whole pages, one in part, and its copy'),
  A8: at(STATISTICS, 'of a published tail is the same'),
  A9: at(STATISTICS, 'leaves out what is stale at the match'),
  A10: at(STATISTICS, 'in two groups counts in both, and the groups are told apart'),
  A11: at(TIERS, 'pages that go down, come back and go for good'),
  A12: at(TIERS, 'the most slots that were to be had in each tier, and not'),
  A13: at(STATISTICS, 'keeps its rate through suspension and resumption, which are counted apart'),
  A14: [
    ...at(TIERS, 'attention and state of a request that gave way and came back'),
    ...at(STORIES, 'count pages and bytes of attention and state that go down, come back, and are dropped'),
  ],
  A15: at(STORIES, 'count pages and bytes of attention and state that go down, come back, and are dropped'),
  A16: at(STATISTICS, 'is looked for once a request, found at the end of a block or inside one, or missed'),
  A17: at(STATISTICS, 'is looked for once a request, found at the end of a block or inside one, or missed'),
  A18: reason('every request counts: none can be left out of the statistics'),

  // Events.
  E1: at(TOLD, 'tells full blocks, and later only what is new'),
  E2: at(RECORDER, 'is told together, by group', 'has ids that go on'),
  E3: at(RECORDER, 'of two groups is one event each, though they come in turns'),
  E4: at(RECORDER, 'by a page that does not cover its block is not told, before nor after'),
  E5: at(RECORDER, 'is told once for every page of a subtree that goes along'),
  E6: at(RECORDER, 'goes out before the same is stored again, and what follows does not join an older event'),
  E7: at(RECORDER, 'goes out behind removals that wait'),
  E8: at(V1, 'are those that TensorRT-LLM has', 'have the salt of their scope in them'),
  E9: at(V1, 'of a child are the same whether or not the parent is still there: they follow from the tokens'),
  E10: at(TOLD, 'tells full blocks, and later only what is new'),
  E11: at(TOLD, 'is exactly what was stored when everything is forgotten, and then one clear'),
  E12: at(TOLD, 'of pictures differ though their placeholders are the same'),
  E13: [
    ...at(TIER_EVENTS, 'a page that the last tier drops is told as removed from there, once'),
    ...at(RECORDER, 'and is dropped there, is removed from there'),
  ],
  E14: at(RECORDER, 'is not told when its block is not, or not from there'),
  E15: reason('a manager is one process: no ranks whose events are gathered'),
  E16: at(TIER_EVENTS, 'a page that goes to the host, or comes back, is told as moved: once a block and group'),
};
