"""On what terms machines are owned: arguments of all tools that count with it."""

from __future__ import annotations

from pydantic import BaseModel, Field


class OwningTerms(BaseModel):
    capex_usd_per_device: float | None = Field(
        default=None, gt=0, le=1e9, description="What a device costs you to buy, with its part of server and network."
    )
    years: float | None = Field(default=None, gt=0, le=50, description="In which owned hardware is written off.")
    resale_share: float | None = Field(
        default=None, ge=0, le=1, description="Of devices' price, what they sell for after years."
    )
    utilisation: float | None = Field(
        default=None, gt=0, le=1, description="Part of all hours that owned hardware works."
    )
    usd_per_kwh: float | None = Field(default=None, ge=0, le=100, description="Electricity price of owned hardware.")
    pue: float | None = Field(default=None, ge=1, le=10, description="Power at the meter over that of the machines.")
    colocation_usd_per_kw_month: float | None = Field(
        default=None, ge=0, le=1e5, description="Room for owned hardware, without electricity."
    )
    maintenance_share: float | None = Field(default=None, ge=0, le=1, description="Of the purchase price, per year.")
    staff_usd_per_device_year: float | None = Field(
        default=None, ge=0, le=1e7, description="People who run owned hardware."
    )
