import {
  type Icon,
  IconAward,
  IconBook,
  IconBuilding,
  IconBuildingBank,
  IconCalendar,
  IconCertificate,
  IconChalkboard,
  IconId,
  IconPresentation,
  IconRoute,
  IconSitemap,
  IconUser,
  IconUsers,
  IconUsersGroup,
} from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { answered, api, type Schemas } from '../api/client.ts';
import type { BadgeKind } from '../parts/state-badge.tsx';

export type UniversityType = Schemas['UniversityType'];
export type ImportRun = Schemas['ImportRun'];
export type TypeState = ImportRun['types'][number]['state'];

export const TYPE_ICON: Readonly<Record<UniversityType['type'], Icon>> = {
  person: IconUser,
  course: IconBook,
  semester: IconCalendar,
  faculty: IconBuildingBank,
  department: IconBuilding,
  program: IconCertificate,
  stream: IconRoute,
  group: IconUsersGroup,
  subgroup: IconUsers,
  teacher_position: IconChalkboard,
  student_position: IconId,
  student_subgroup: IconSitemap,
  teaching_assignment: IconPresentation,
  admin_appointment: IconAward,
};

/** The four phases of an import: types of one refer to those before. */
export const PHASES = ['first', 'second', 'third', 'fourth'] as const;

export const PHASE: Readonly<Record<UniversityType['type'], (typeof PHASES)[number]>> = {
  person: 'first',
  course: 'first',
  semester: 'first',
  faculty: 'first',
  department: 'second',
  program: 'second',
  stream: 'second',
  group: 'second',
  subgroup: 'second',
  teacher_position: 'third',
  student_position: 'third',
  student_subgroup: 'third',
  teaching_assignment: 'fourth',
  admin_appointment: 'fourth',
};

export const TYPE_STATE: Readonly<Record<TypeState, BadgeKind>> = {
  waiting: 'off',
  fetching: 'wait',
  running: 'wait',
  succeeded: 'good',
  partial: 'warn',
  failed: 'bad',
  unchanged: 'good',
  not_offered: 'off',
  stopped: 'bad',
};

export const RUN_STATE: Readonly<Record<ImportRun['state'], BadgeKind>> = {
  running: 'wait',
  succeeded: 'good',
  partial: 'warn',
  failed: 'bad',
  interrupted: 'bad',
};

export const useUniversityTypes = () =>
  useQuery({
    queryKey: ['university', 'types'],
    queryFn: async () => answered(await api.GET('/api/admin/university/types')),
    staleTime: 0,
  });
