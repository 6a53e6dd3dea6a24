import { useQuery } from '@tanstack/react-query';
import { answered, api } from './client.ts';

const REFRESH_MS = 5_000;

/** The effective configuration, with where each value comes from, and what is changed since: on the machine, so it is read again and again. */
export const useConfig = (isAsked = true) =>
  useQuery({
    queryKey: ['config'],
    queryFn: async () => answered(await api.GET('/api/admin/config')),
    enabled: isAsked,
    staleTime: 0,
    refetchInterval: REFRESH_MS,
  });
