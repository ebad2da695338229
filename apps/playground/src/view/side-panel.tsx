import { sideTab } from '../state/store.ts';
import { GroupsPanel } from './groups-panel.tsx';
import { Tabs } from './parts/tabs.tsx';
import { PoliciesPanel } from './policies/policies-panel.tsx';
import { ScratchPanel } from './scratch-panel.tsx';
import { StoryPanel } from './story-panel.tsx';
import { TreePanel } from './tree/tree-panel.tsx';

const TABS = [
  { id: 'story', title: 'Story', content: () => <StoryPanel /> },
  { id: 'tree', title: 'Tree', content: () => <TreePanel /> },
  { id: 'groups', title: 'Groups', content: () => <GroupsPanel /> },
  { id: 'policies', title: 'Policies', content: () => <PoliciesPanel /> },
  { id: 'scratch', title: 'Scratch', content: () => <ScratchPanel /> },
];

/** What is behind the picture: what happened, what is shared with whom, what it counts up to, and what decides about it. */
export function SidePanel() {
  return (
    <section class="panel side" id="side" aria-label="Behind the picture">
      <Tabs
        label="Behind the picture"
        tabs={TABS}
        chosen={sideTab.value}
        onChoose={(id) => {
          sideTab.value = id;
        }}
      />
    </section>
  );
}
