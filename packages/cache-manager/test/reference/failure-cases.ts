import { at, type Coverage, reason } from './covered.ts';

const POLICIES = 'test/scenarios/policies';
const SCRATCH = 'test/scenarios/scratch';
const MATCHING = 'test/scenarios/matching';
const STATE = 'test/scenarios/recurrent-state';
const ROOM = 'test/scenarios/room';
const WINDOWS = 'test/scenarios/windows';
const STORIES = 'test/scenarios/tier-stories';
const MOVING = 'test/scenarios/moving-pages';
const STATISTICS = 'test/statistics/iteration-statistics';
const TOLD = 'test/events/told-events';
const DISK = 'src/tiers/disk-memory';
const FAULTS = 'test/faults/every-call-fails';

const connectors = (what: string) => reason(`a connector’s: ${what}; the manager knows no outside store`);
const transfer = (what: string) => reason(`a transfer’s between workers: ${what}; the manager knows no other worker`);

/** Every entry of the list of other people’s failures, in its order. */
export const FAILURE_IDS: readonly string[] = [
  ...'B01 B02 B04 B05 B07 B08 B10 B11 B13 B14 B16 B17 B19 B20 B22 B23 B25 B26 B28 B29'.split(' '),
  ...'B31 B32 B34 B35 B37 B38 B40 B41 B43 B44 B46 B47 B49 B50 B52 B53 B55 B56 B58'.split(' '),
  ...'B59 B61 B62 B64 B65 B67 B68 B70 B71 B73 B74 B76 B77 B79 B80 B82 B83 B85 B86'.split(' '),
];

/** What each would break here, and the test that would see it. */
export const FAILURE_CASES: Readonly<Record<string, Coverage>> = {
  // Attention and recurrent state together.
  B01: at(STATE, 'ends where attention and state agree', 'after rejected drafts are of the accepted tokens, or there are none'),
  B02: at(STATE, 'is what all groups can do together when a page of attention is lost in the middle'),
  B04: at(STATE, 'state keeps its slot while attention pages of one token each come and go'),
  B05: at(
    STATE,
    'is nothing when the only snapshot is lost',
    'is not shortened by a lost optional snapshot, which cannot be selected any more',
  ),
  B07: at(ROOM, 'drafts may change in number from step to step'),
  B08: [...at(SCRATCH, 'are never published'), ...at(TOLD, 'are not told, and those behind have the right tokens and parent')],
  B10: reason('how a batch is packed is the engine’s and its kernels’; the manager sees one request at a time'),
  B11: at(WINDOWS, 'a claim outlives that its page left the tree and another came, closing the'),
  B13: at(STATE, 'requests of no tokens, of one and of three leave no empty block, snapshot or root'),
  B14: at(
    STATE,
    'goes on when its snapshot is lost between two commits',
    'a prompt of a quarter of a million tokens keeps its whole path',
  ),
  B16: at(ROOM, 'a newcomer waits and the running request keeps its pages to the end'),
  B17: [
    ...at(
      MOVING,
      'a page is read in the order of the queue: behind the kernels that wrote it, before those that write its slot again',
    ),
    ...at(MOVING, 'a step does not wait: the slot is free while its page is still on the way'),
  ],

  // Windows and scratch.
  B19: at(WINDOWS, 'are freed once, however often the same text is committed'),
  B20: at(WINDOWS, 'are free at once, and closing their former owner leaves the new one alone'),
  B22: at(WINDOWS, 'pages of the first owner where they are'),
  B23: at(WINDOWS, 'in chunks leaves matches exactly where a window is whole'),
  B25: at(
    SCRATCH,
    'keeps a margin in pages: drafts inside it may be rejected',
    'without a margin refuses to go back',
    'is not shrunk, with a margin of',
  ),
  B26: at(SCRATCH, 'two chunks of a prompt share scratch in turn, also where layers have unequal numbers of buffers'),
  B28: at(WINDOWS, 'a table copied when a step is put together names that step'),
  B29: at(WINDOWS, 'stay readable until history says so, with'),

  // Tree, partial blocks, eviction, counting.
  B31: at(ROOM, 'two that computed the same own it once, closing'),
  B32: [
    ...at(STATE, 'worth more than others stay when there is no room for all, and what was left out or evicted is counted'),
    ...at('test/scenarios/eviction', 'inside one long prompt do not push out the one where paths part'),
  ],
  B34: at(MOVING, 'room for pages from elsewhere is never made of the ones that were found'),
  B35: at(ROOM, 'the oldest leave first, and of one request the tail before the beginning'),
  B37: at(MOVING, 'held pages of the last tier stay, however often they are asked for, and however often a holder leaves'),
  B38: at(MOVING, 'what is pushed through a small disk leaves the newest there, and no more than fits'),
  B40: at(STATISTICS, 'counts once, however often its first resume is refused'),
  B41: [
    ...at(STATISTICS, 'keeps its rate through suspension and resumption, which are counted apart'),
    ...at(STORIES, 'keep the hit rate of requests that went through the host, which only tier counts show'),
  ],
  B43: [
    ...at(WINDOWS, 'a prompt a hundred times as long as the pool goes through a window step by step'),
    ...at(STORIES, 'holds the worst phase of a window: a request decodes on in the fewest slots there may be'),
  ],
  B44: at(
    STORIES,
    'are both refused unchanged; one gives way, and both finish',
    'and give way both at once come back one after the other',
  ),

  // Connectors: what their failures would be inside the manager.
  B46: at(
    STORIES,
    'lets its request begin again where all groups agree',
    'costs the request that holds it what lies behind, and no more',
  ),
  B47: at(STORIES, 'is of its own group: the page of the same slot in another group stays'),
  B49: connectors('several stores that answer for one another'),
  B50: [
    ...at(MOVING, 'a step does not wait: the slot is free while its page is still on the way'),
    ...at(
      MOVING,
      'a page is read in the order of the queue: behind the kernels that wrote it, before those that write its slot again',
    ),
  ],

  // Isolation and identity.
  B52: [
    ...at(MATCHING, 'is a border: nothing is matched across, and everything within'),
    ...at(TOLD, 'have keys of their own, told with LoRA and salt apart'),
  ],
  B53: connectors('the names under which it stores what it saves'),
  B55: at(MATCHING, 'is empty after everything reusable was cleared'),
  B56: [
    ...at('test/scenarios/equal-hashes', 'where all tokens have one hash, the tokens decide'),
    ...at('src/tree/radix-tree', 'is told by its tokens when every hash is the same: collisions cost time and nothing else'),
  ],
  B58: at(SCRATCH, 'do not hide a shorter end that an earlier request left'),

  // Transfers between workers.
  B59: transfer('who gives up, and who hears of it'),
  B61: transfer('a request that is refused before it is admitted'),
  B62: transfer('layouts of two sides that differ'),
  B64: transfer('ids of transfers'),
  B65: transfer('bytes that come after the request is gone'),

  // Tiers, disk, restart.
  B67: at(MOVING, 'indices name the slots of now, after pages went and came back, and after pools grew'),
  B68: at(STORIES, 'ends the match before it', 'makes the index incomplete, and no more'),
  B70: at(MOVING, 'while a request comes back, another commits the same tokens: one set of pages is left'),
  B71: at(
    MOVING,
    'a page is read in the order of the queue: behind the kernels that wrote it, before those that write its slot again',
  ),
  B73: [
    ...at(DISK, 'of before are not taken for what was to replace them'),
    ...at(MOVING, 'fails, nothing leaks and every page that is read is right'),
    ...at(FAULTS, 'survive that any one %s fails'),
  ],
  B74: at(
    DISK,
    'of an earlier manager are forgotten, and what is not of this tier is left alone',
    'take no more keys than there were pages at a time',
  ),
  B76: at(MATCHING, 'but drops the last tokens of the reply falls back to the end of the prompt'),
  B77: at(STORIES, 'forgetting everything forgets it in every tier, and nothing while a request is open'),

  // Events.
  B79: at(
    'test/events/tier-events',
    'what two computed is stored once, stays known while a colder copy lives, and is removed with the last',
  ),
  B80: at(
    TOLD,
    'are not told, and those behind have the right tokens and parent',
    'and a tail that fills no block: the tail is silent',
  ),

  // Batching, forks, stores, hygiene.
  B82: at(MATCHING, 'all see the same, and what differs stays apart'),
  B83: reason('a GPU program’s: which state it reads is in its bindings; the manager hands out numbers only'),
  B85: at(
    MOVING,
    'a step does not wait: the slot is free while its page is still on the way, and whoever wants the page waits for it',
  ),
  B86: [
    ...at(STATE, 'fresh state is zero, whatever its slot held before'),
    ...at(MOVING, 'recurrent state that is fresh is zero, also in a slot whose page went to the host'),
    ...at(POLICIES, 'is replaced by fresh pages, and stays there for others'),
  ],
};
